"""Accept: validate, authorise, record the intent, hand it on; answer reads."""
