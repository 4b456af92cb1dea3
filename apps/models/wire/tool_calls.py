"""Tool calls from the fragments of a stream."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Wire = dict[str, Any]


@dataclass
class _Call:
    call_id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def is_whole(self) -> bool:
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except ValueError:
            return False


class ToolCallAssembler:
    """Join fragments into calls: none lost, none doubled, no two merged.

    Vendors disagree about which of index and id names a call. The order of trust: an id seen before
    is that call; a new id is a new call; then the index; a fragment with neither joins the call
    that is open. Names are taken once, not concatenated; another name, or a name after complete
    arguments, is another call. Calls without an id get one, and so does the second call of an id.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, fragments: Any) -> None:
        """Take the ``tool_calls`` of one delta, whatever it is."""
        for fragment in fragments if isinstance(fragments, list) else []:
            if isinstance(fragment, dict):
                self._join(fragment)

    def calls(self) -> list[Wire]:
        """Return the calls in the order in which they began; arguments are text as the model wrote it."""
        return [
            {
                "id": call.call_id or f"call_{uuid4().hex}",
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.arguments)},
            }
            for call in self._calls
        ]

    def _join(self, fragment: Wire) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call_id = str(fragment.get("id") or "")
        name = str(function.get("name") or "")
        index = fragment.get("index")
        index = index if isinstance(index, int) else None
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)

        call = self._find(call_id, index, name, bool(arguments.strip()))
        if index is not None:
            self._by_index[index] = call
        call.name = call.name or name
        call.arguments.append(arguments)

    def _find(self, call_id: str, index: int | None, name: str, has_arguments: bool) -> _Call:
        if call_id:
            if call_id not in self._by_id:
                # an id that comes late belongs to the call of its index that has none yet
                known = self._by_index.get(index) if index is not None else None
                if known is None or known.call_id or self._is_another(known, name, has_arguments):
                    return self._open(call_id)
                known.call_id = call_id
                self._by_id[call_id] = known
            return self._of_id(call_id, index, name)
        known = self._by_index.get(index) if index is not None else None
        if known is None and (index is None or not name):
            known = self._calls[-1] if self._calls else None
        if known is None or self._is_another(known, name, has_arguments):
            return self._open("")
        return known

    def _of_id(self, call_id: str, index: int | None, name: str) -> _Call:
        """Return the call of an id that was seen before; some vendors give it to another call, too."""
        known = self._by_id[call_id]
        at = self._by_index.get(index) if index is not None else None
        if at is not None:
            return known if at.call_id else at
        begins = name and (name != known.name or (index is not None and known.is_whole()))
        return self._open("") if begins and known.name else known

    @staticmethod
    def _is_another(call: _Call, name: str, has_arguments: bool) -> bool:
        if not name or not call.name:
            return False
        return name != call.name or (has_arguments and call.is_whole())

    def _open(self, call_id: str) -> _Call:
        call = _Call(call_id)
        self._calls.append(call)
        if call_id:
            self._by_id[call_id] = call
        return call
