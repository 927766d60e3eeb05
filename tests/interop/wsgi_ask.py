"""One request to a WSGI application in this process; used by both sides, so it imports nothing of either."""

import io
import json


def ask(app, method, path, headers, body=None):
    """Status, headers (names in lower case; of a name that comes twice both values) and text of the answer.

    `path` is as in a request line: quoted, with its query. `body` is a text or None.
    """
    raw = (body or "").encode()
    where, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _unquoted(where),
        "RAW_URI": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "compute",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "compute",
        "REMOTE_ADDR": "192.0.2.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(raw),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if body is not None:
        environ["CONTENT_LENGTH"] = str(len(raw))
        environ["CONTENT_TYPE"] = "application/json"
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    begun = {}

    def start_response(status, given, exc_info=None):
        begun["status"], begun["headers"] = int(status.split()[0]), {}
        for name, value in given:
            begun["headers"].setdefault(name.lower(), []).append(value)

    answer = app(environ, start_response)
    try:
        text = b"".join(answer).decode()
    finally:
        getattr(answer, "close", lambda: None)()
    return [begun["status"], begun["headers"], _document(text)]


def _document(text):
    try:
        return json.loads(text) if text else None
    except ValueError:
        return {"text": text}


def _unquoted(path):
    """As WSGI wants it: the bytes of the path, each as one character."""
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path).decode("latin-1")
