-- Without this check an Application counts as healthy at once, and no wave of Applications waits for the one before.
-- One that syncs by itself is healthy to Argo CD as soon as it is there, with nothing applied: until a first sync has
-- ended well, it is not. One that a root syncs is what that sync has made of it, and only when Argo CD has looked at it
-- again.
local metadata, status = obj.metadata or {}, obj.status or {}
local annotations, health, seen = metadata.annotations or {}, status.health or {}, status.sync or {}
local own = {status = health.status or "Progressing", message = health.message or ""}
local last = status.operationState or {}
if annotations["gpuplan.dev/content"] == nil then
  local automated = ((obj.spec or {}).syncPolicy or {}).automated
  if automated == nil or seen.status == "Synced" or #(status.history or {}) > 0 then
    return own
  end
  if last.phase == "Failed" or last.phase == "Error" then
    return {status = "Degraded", message = "Its first sync failed: " .. (last.message or last.phase)}
  end
  return {status = "Progressing", message = last.message or "Nothing of it is applied yet."}
end
local function revision(found)
  local all = found.revisions or {}
  return all[#all] or found.revision
end
if last.phase == "Running" or last.phase == "Terminating" then
  return {status = "Progressing", message = last.message or "It is being synced."}
end
if obj.operation ~= nil or last.phase == nil then
  return {status = "Progressing", message = "Its sync has not begun."}
end
if last.phase ~= "Succeeded" then
  return {status = "Degraded", message = "Its sync failed: " .. (last.message or last.phase)}
end
if (status.reconciledAt or "") < (last.finishedAt or "") then
  return {status = "Progressing", message = "Argo CD has not looked at it since its sync."}
end
local asked = ((last.operation or {}).sync) or {}
if revision(asked) ~= annotations["gpuplan.dev/revision"] and seen.status ~= "Synced" then
  return {status = "Degraded", message = "Another sync was under way, and the commit of the root is not synced."}
end
local is_later = seen.status == "OutOfSync" and revision(seen) ~= revision(last.syncResult or {})
if is_later and own.status ~= "Healthy" and own.status ~= "Degraded" then
  return {status = "Degraded", message = "A later commit changes it before it is healthy: " .. own.message}
end
return own
