"""What places in policies are called where people read of them."""

from __future__ import annotations

from tests.laws.tracing.policies import OVERLAYS, Place, Policies
from tests.laws.tracing.rendered import spelt


class Names:
    """The documents of some policies by what they call themselves."""

    def __init__(self, policies: Policies) -> None:
        self._names = {
            (file, number): f"{item.get('kind')}/{item.get('metadata', {}).get('name')}"
            for file, documents in policies.documents.items()
            for number, item in enumerate(documents)
        }

    def is_of(self, place: Place, document: str) -> bool:
        """Whether a place is in a document, such as `Pool/a100-mixed`, or in one of a kind, such as `Pool`."""
        name = self._names[place.file, place.document]
        return not document or document in (name, name.split("/")[0])

    def kind(self, place: Place) -> str:
        return self._names[place.file, place.document].split("/")[0]

    def spell(self, place: Place) -> str:
        """Such as `[dev] Pool/a100-mixed spec.nodes.count`, with the overlay that it is in."""
        folder = place.file.split("/")
        layer = f"[{folder[1]}] " if folder[0] == OVERLAYS else ""
        return f"{layer}{self._names[place.file, place.document]} {spelt(place.path)}"
