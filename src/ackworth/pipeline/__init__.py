"""Judges a record on Spark: the account of every message, and what it says about the broker's ack.

The flow, in the order of the modules:

    session    the one place that starts or reaches Spark
    work       a record's row groups cut into tasks; what a task does; what a reduction does
    on_spark   the same in Spark: a function over tasks, and a reduction by key
    measure/   one file a measurement
    judge      measurements into checks, checks into a verdict
    trial      all of it: `judge_trial`
"""
