-- The operator writes the conditions "Ready" and "Error", of which one is true, and notes no generation. So one that is
-- older than the object's last change says nothing, for two minutes: a change of no DaemonSet changes no condition.
local os = require("os")
local metadata, status = obj.metadata or {}, obj.status or {}
local held = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    held[condition.type] = condition
  end
end
local changed = ""
for _, entry in ipairs(metadata.managedFields or {}) do
  if entry.subresource ~= "status" and (entry.time or "") > changed then
    changed = entry.time
  end
end
local function is_seen(condition)
  local offset = os.time() - os.time(os.date("!*t"))
  local earlier = os.date("%Y-%m-%dT%H:%M:%SZ", os.time() - offset - 120)
  return (condition.lastTransitionTime or "") >= changed or changed < earlier
end
local unseen = {status = "Progressing", message = "The operator may not have seen the last change yet."}
local failed, ready = held.Error, held.Ready
if status.state == "disabled" then
  return {status = "Healthy", message = "The ClusterPolicy manages the driver, not this object."}
end
if failed and failed.reason ~= "DriverNotReady" then
  return is_seen(failed) and {status = "Degraded", message = failed.message or failed.reason} or unseen
end
if failed or not ready or status.state ~= "ready" then
  return {status = "Progressing", message = (failed or {}).message or "Waiting for the operator."}
end
return is_seen(ready) and {status = "Healthy", message = "The driver is ready on all of its nodes."} or unseen
