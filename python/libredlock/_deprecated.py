"""Names that are kept for programs that use them."""

from __future__ import annotations

from typing import Any


class OldNames:
    """Of methods of clients."""

    def guard(self, resource: Any, **options: Any) -> Any:
        """The name that with_lock() had before."""
        import warnings

        warnings.warn("client.guard() is now client.with_lock()", DeprecationWarning, stacklevel=2)
        return self.with_lock(resource, **options)  # type: ignore[attr-defined]
