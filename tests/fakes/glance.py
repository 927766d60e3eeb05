"""Glance in memory: images with data, checksums and hashes."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from tests.fakes.web import FakeService, Refused, body, query, reply, route

from kilonova.clients.http import Reply, Request

NOW = "2026-01-01T00:00:00Z"


class FakeGlance(FakeService):
    """`images` and `data` by id, open for tests."""

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[str, dict[str, Any]] = {}
        self.data: dict[str, bytes] = {}

    def image(self, data: bytes | None = b"image", *, project: str = "project", **more: Any) -> str:
        """An active image (a queued one without data); its id."""
        new = self._new({"visibility": "public", "owner": project, "disk_format": "raw", **more})
        if data is not None:
            self._store(new, data)
        return new["id"]

    @route("GET", "/v2/images")
    def list_images(self, request: Request) -> Any:
        wanted = dict(query(request))
        wanted = {name: value for name, value in wanted.items() if name not in ("limit", "marker")}
        found = [each for each in self.images.values() if self._visible(request, each)]
        found = [each for each in found if all(str(each.get(key)) == value for key, value in wanted.items())]
        page, link = self.paged(request, found)
        return {"images": page, **({"next": link} if link else {})}

    @route("GET", "/v2/images/{item}")
    def show_image(self, request: Request, item: str) -> Any:
        return self._get(request, item)

    @route("POST", "/v2/images")
    def create_image(self, request: Request) -> Reply:
        return reply(201, self._new({"visibility": "private", "owner": request.ctxt.project_id, **body(request)}))

    @route("PATCH", "/v2/images/{item}")
    def update_image(self, request: Request, item: str) -> Any:
        image = self._get(request, item)
        for change in body(request):
            name = change["path"].lstrip("/")
            if change["op"] == "remove":
                del image[name]
            else:
                image[name] = change["value"]
        return image

    @route("DELETE", "/v2/images/{item}")
    def delete_image(self, request: Request, item: str) -> Reply:
        del self.images[self._get(request, item)["id"]]
        self.data.pop(item, None)
        return reply(204)

    @route("GET", "/v2/images/{item}/file")
    def download(self, request: Request, item: str) -> Reply:
        self._get(request, item)
        if item not in self.data:
            return reply(204)
        return Reply(200, self.data[item])

    @route("PUT", "/v2/images/{item}/file")
    def upload(self, request: Request, item: str) -> Reply:
        image = self._get(request, item)
        data = request.upload
        content = data.read() if hasattr(data, "read") else b"".join(data or ())
        self._store(image, content)
        return reply(204)

    def _new(self, given: dict[str, Any]) -> dict[str, Any]:
        image = {
            "id": str(uuid.uuid4()),
            "name": None,
            "status": "queued",
            "container_format": "bare",
            "disk_format": None,
            "protected": False,
            "min_ram": 0,
            "min_disk": 0,
            "size": None,
            "virtual_size": None,
            "checksum": None,
            "os_hash_algo": None,
            "os_hash_value": None,
            "os_hidden": False,
            "created_at": NOW,
            "updated_at": NOW,
            "tags": [],
            "self": "/v2/images/x",
            "file": "/v2/images/x/file",
            "schema": "/v2/schemas/image",
            **given,
        }
        self.images[image["id"]] = image
        return image

    def _store(self, image: dict[str, Any], data: bytes) -> None:
        self.data[image["id"]] = data
        image["status"] = "active"
        image["size"] = len(data)
        image["checksum"] = hashlib.md5(data).hexdigest()
        image["os_hash_algo"], image["os_hash_value"] = "sha512", hashlib.sha512(data).hexdigest()

    def _get(self, request: Request, item: str) -> dict[str, Any]:
        image = self.images.get(item)
        if image is None or not self._visible(request, image):
            raise Refused(404, {"message": f"No image found with ID {item}"})
        return image

    def _visible(self, request: Request, image: dict[str, Any]) -> bool:
        mine = image["owner"] == request.ctxt.project_id
        return mine or image["visibility"] in ("public", "community") or request.ctxt.is_admin
