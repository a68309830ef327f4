"""The record: the schema, declared once; the spool, the segments, the reader."""
