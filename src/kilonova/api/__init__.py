"""Accept: validates, authorises, records the intent, hands it on; answers reads.

How to add a noun (a verb on a server goes the same way, into the two ``ops`` packages):

1. ``contract/nouns/<noun>.py``: a `Route` constant per request. Shapes are `Object`s of `Field`s with the microversions
   that have them; `contract/nouns/flavors.py` is the example. Check them against the contract with
   ``python -m kilonova.contract validate`` (the ``schemas`` check asks all questions).
2. ``api/nouns/<noun>.py``: a function per route, ``def show(call: Call[Services], flavor_id: str) -> dict``, whose
   parameters beside ``call`` are those of the path, and ``ROUTES = [Binding(flavors.SHOW, show), ...]``. `api.routes`
   finds the module by itself.
3. A handler calls ``call.authorize(RULE, target)`` first, reads by queries of ``db`` (no objects) and returns the
   newest shape as a dict: what the asked microversion does not know is taken out by the serializer. Another status,
   headers or no body: ``Reply(body, status, headers)``. Values that depend on the version are chosen by
   ``call.version`` (an int: 53 is 2.53, 0 the legacy endpoint).
4. Errors: raise an exception of `kilonova.contract.exceptions` (its code below 500 and its message become the fault;
   anything else is a 500 in the log) or, where the code must be another, ``faults.conflict(error.format_message())``.
5. Lists: `api.paging.page(call)` gives limit and marker, ``call.next_link(last_id)`` the link.
"""
