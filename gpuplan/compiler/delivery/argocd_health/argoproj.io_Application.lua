-- Without this check an Application counts as healthy at once, and no wave of Applications waits for the one before.
local health = (obj.status or {}).health or {}
return {status = health.status or "Progressing", message = health.message or ""}
