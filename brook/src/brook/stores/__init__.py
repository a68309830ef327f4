"""The databases that Brook can live in, one file each."""
