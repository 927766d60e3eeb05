"""Glance: images shown, listed, downloaded with their checksum verified, made and uploaded."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any

from kilonova.base import retry, wanted
from kilonova.clients import paging, passing, patience, refusals
from kilonova.clients.glance import translate
from kilonova.clients.http import Http, Params, Reply, Request, ServiceUnavailable
from kilonova.clients.passing import Meaning
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

PAGE = 200
PATCH_TYPE = "application/openstack-images-v2.1-json-patch"


class Glance:
    """Calls to the image service (API v2) with the user's token."""

    def __init__(self, http: Http, retries: int = 3) -> None:
        self._http = http
        self._downloads = retry.Backoff(attempts=retries + 1, base=0.5, cap=10.0)

    def image_show(self, ctxt: RequestContext, image_id: str) -> dict[str, Any]:
        """The image in the inner form (see `translate`), ready for ImageMeta.from_dict.

        Raises ImageNotFound, ImageNotAuthorized.
        """
        return translate.from_glance(self._image(ctxt, image_id))

    def image_list(self, ctxt: RequestContext, **filters: Any) -> Iterator[dict[str, Any]]:
        """All images that match, page after page; filters are Glance's query parameters (limit and marker too)."""

        def ask(params: Params) -> Any:
            return self._expect(self._http.call(ctxt, "GET", "/v2/images", params=params), None).json()

        if "limit" in filters:
            return map(translate.from_glance, ask(filters)["images"])
        return map(translate.from_glance, paging.every("glance", ask, {"limit": PAGE, **filters}, "images"))

    def image_create(self, ctxt: RequestContext, image: Mapping[str, Any]) -> dict[str, Any]:
        """A new image record without data; an `id` in it is kept. Raises ImageQuotaExceeded, ImageBadRequest."""
        reply = self._http.call(ctxt, "POST", "/v2/images", body=translate.to_glance(image))
        return translate.from_glance(self._expect(reply, image.get("id")).json())

    def image_upload(self, ctxt: RequestContext, image_id: str, data: IO[bytes] | Iterator[bytes]) -> None:
        """Send an image's bytes. Not repeated: the caller sees to the data. Raises ImageQuotaExceeded."""
        headers = {"Content-Type": "application/octet-stream"}
        reply = self._http.call(ctxt, "PUT", f"/v2/images/{image_id}/file", upload=data, headers=headers)
        self._expect(reply, image_id)

    def image_update(
        self, ctxt: RequestContext, image_id: str, image: Mapping[str, Any], *, purge_properties: bool = False
    ) -> dict[str, Any]:
        """Change attributes and properties; `purge_properties` removes those not given."""
        wanted = translate.to_glance(image)
        wanted.pop("id", None)
        now = self._image(ctxt, image_id)
        patch = [
            {"op": "replace" if name in now else "add", "path": f"/{name}", "value": value}
            for name, value in wanted.items()
        ]
        if purge_properties:
            gone = set(now) - translate.BASE - set(wanted)
            patch += [{"op": "remove", "path": f"/{name}"} for name in sorted(gone)]
        headers = {"Content-Type": PATCH_TYPE}
        reply = self._http.call(ctxt, "PATCH", f"/v2/images/{image_id}", body=patch, headers=headers)
        return translate.from_glance(self._expect(reply, image_id).json())

    def image_delete(self, ctxt: RequestContext, image_id: str) -> None:
        """Raises ImageNotFound, ImageNotAuthorized, ImageDeleteConflict (a server's volume uses it)."""
        reply = self._http.call(ctxt, "DELETE", f"/v2/images/{image_id}")
        self._expect(reply, image_id, "image deletion")

    # --- downloading -----------------------------------------------------------------------

    def image_download(self, ctxt: RequestContext, image_id: str, path: str) -> None:
        """Write the image's bytes to `path`, durably, and only if their checksum is the image's.

        Raises ImageNotFound, ImageNotAuthorized, ImageUnacceptable (no data, no active image), and after
        the configured attempts CorruptImage-like ImageUnacceptable or ServiceUnavailable.
        """
        image = self._image(ctxt, image_id)
        if image.get("status") != "active":
            raise exceptions.ImageUnacceptable(image_id=image_id, reason=f"its status is {image.get('status')}")
        patience.outlast(
            lambda: retry.call(
                lambda: self._download(ctxt, image, path),
                on=(ServiceUnavailable, ChecksumMismatch),
                backoff=self._downloads,
                before_retry=lambda exc, n: LOG.warning("download of image %s, attempt %d: %s", image_id, n, exc),
            ),
            lambda exc: isinstance(exc, ServiceUnavailable),
            f"download of image {image_id}",
        )

    def fetch(self, ctxt: RequestContext, image_id: str, path: str) -> None:
        """The same as `image_download`, under the name by which drivers ask."""
        self.image_download(ctxt, image_id, path)

    def _download(self, ctxt: RequestContext, image: Mapping[str, Any], path: str) -> None:
        request = Request("GET", f"/v2/images/{image['id']}/file", ctxt)
        reply, chunks = self._http.transport.stream(request)
        if passing.of_answer(reply.status) is not Meaning.FINAL:
            raise ServiceUnavailable("glance", "no image data now", reply.status)
        self._expect(reply, image["id"])
        if reply.status == 204:
            raise exceptions.ImageUnacceptable(image_id=image["id"], reason="it has no data")
        digest = digest_for(image)
        size = 0
        with open(path, "wb") as file:
            for chunk in chunks:
                wanted.check()
                file.write(chunk)
                size += len(chunk)
                if digest is not None:
                    digest[0].update(chunk)
            file.flush()
            os.fsync(file.fileno())
        self._verify(image, size, digest)

    def _verify(self, image: Mapping[str, Any], size: int, digest: tuple[Any, str] | None) -> None:
        if image.get("size") is not None and size != image["size"]:
            raise ChecksumMismatch(image_id=image["id"], reason=f"{size} bytes came instead of {image['size']}")
        if digest is not None and digest[0].hexdigest() != digest[1]:
            raise ChecksumMismatch(image_id=image["id"], reason="its checksum does not match")

    def _image(self, ctxt: RequestContext, image_id: str) -> dict[str, Any]:
        return dict(self._expect(self._http.call(ctxt, "GET", f"/v2/images/{image_id}"), image_id).json())

    def _expect(self, reply: Reply, image_id: str | None, about: str = "") -> Reply:
        if not reply.ok:
            raise refusals.of(self._http.error(reply), about, image_id=image_id)
        return reply


class ChecksumMismatch(exceptions.ImageUnacceptable):
    """The bytes that came are not the image's."""


def digest_for(image: Mapping[str, Any]) -> tuple[Any, str] | None:
    """(running hash, wanted hex digest): the image's multihash where we know the algorithm, else its MD5."""
    algorithm = image.get("os_hash_algo")
    if algorithm and algorithm in hashlib.algorithms_available and image.get("os_hash_value"):
        return hashlib.new(algorithm), image["os_hash_value"]
    if image.get("checksum"):
        return hashlib.md5(usedforsecurity=False), image["checksum"]
    return None
