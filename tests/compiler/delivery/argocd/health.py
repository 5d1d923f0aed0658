"""Runs a health check for Argo CD as Argo CD does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lupa.lua51 import LuaRuntime

# Argo CD opens the basic functions and `table` alone, and has a module `os` of two functions (`util/lua/lua.go` and
# `oslib_safe.go` there); gopher-lua speaks Lua 5.1. Strings have no methods then either.
SANDBOX = """
debug.setmetatable("", nil)
local modules = {os = {time = os.time, date = os.date}}
for _, name in ipairs({"string", "io", "os", "math", "coroutine", "package", "debug", "require", "python"}) do
  _G[name] = nil
end
require = function(name) return modules[name] end
"""


def judged(check: str, body: Mapping[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False)
    lua.execute(SANDBOX)
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    found = lua.execute(check)
    return found["status"], found["message"]
