-- The operator says "Error" of whatever is not ready, so its reason tells what is under way from what is broken.
local waiting = {
  OperandNotReady = true,
  NFDLabelsMissing = true,
  NoGPUNodes = true,
}
local status = obj.status or {}
if status.state == "ignored" then
  return {status = "Degraded", message = "Another ClusterPolicy is in force; a cluster has one."}
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.observedGeneration ~= nil and condition.observedGeneration < (obj.metadata.generation or 0) then
    return {status = "Progressing", message = "The operator has not seen the last change yet."}
  end
  if condition.type == "Error" and condition.status == "True" and not waiting[condition.reason] then
    return {status = "Degraded", message = condition.message or condition.reason}
  end
end
if status.state == "ready" then
  return {status = "Healthy", message = "All operands are ready."}
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Error" and condition.status == "True" then
    return {status = "Progressing", message = condition.message or condition.reason}
  end
end
return {status = "Progressing", message = "Waiting for the operator."}
