"""For users of Spark: queues as data frames. Judging, which runs on Spark too, is in `ackworth.pipeline`."""
