-- Without this check an Application counts as healthy at once, and no wave of Applications waits for the one before.
-- One that syncs by itself is healthy to Argo CD as soon as it is there, with nothing applied: until a first sync has
-- ended well, it is not.
local status = obj.status or {}
local health, seen, last = status.health or {}, status.sync or {}, status.operationState or {}
local own = {status = health.status or "Progressing", message = health.message or ""}
local automated = ((obj.spec or {}).syncPolicy or {}).automated
if automated == nil or seen.status == "Synced" or #(status.history or {}) > 0 then
  return own
end
if last.phase == "Failed" or last.phase == "Error" then
  return {status = "Degraded", message = "Its first sync failed: " .. (last.message or last.phase)}
end
return {status = "Progressing", message = last.message or "Nothing of it is applied yet."}
