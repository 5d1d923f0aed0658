-- KAI-Scheduler's operator makes all components of its Config, and says in three conditions how far it is, each for one
-- generation (docs/gitops/README.md there). Only a missing dependency is for a person to mend.
local metadata, status = obj.metadata or {}, obj.status or {}
local seen = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.observedGeneration == metadata.generation then
    seen[condition.type] = condition
  end
end
local needs = seen.DependenciesFulfilled
if needs and needs.status == "False" then
  return {status = "Degraded", message = needs.message or needs.reason}
end
for _, name in ipairs({"Deployed", "Available", "DependenciesFulfilled"}) do
  if not seen[name] or seen[name].status ~= "True" then
    return {status = "Progressing", message = "Waiting for the operator: " .. name .. "."}
  end
end
return {status = "Healthy", message = "All components are there."}
