"""Ackworth: what is your broker's ack worth?"""

__version__ = "0.1.0"
