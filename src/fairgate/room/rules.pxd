# The signatures come from the annotations: tools/tables.py
