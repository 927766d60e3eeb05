"""REST shapes per noun; every field carries the microversions in which it exists."""
