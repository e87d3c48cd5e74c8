"""The schemes that an experiment compares, by name; each decides for both engines alike."""
