"""Between rows and wire objects: hydration, and the writes that objects ask for.

Functions take the open transaction first. What a remotable method of an object does is a function
`(tx, ctxt, obj, ...)`, what a class method does one of `(tx, ctxt, ...)`, so that the conductor's object service serves
them as they are.
"""
