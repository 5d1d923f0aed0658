// The objects of fleet-N from the same data, as a map of paths to YAML texts; nothing is read, typed or checked.
local data = std.extVar('data');

local file(object) = std.manifestYamlDoc(object, indent_array_in_object=false, quote_keys=false);
local kustomization(resources) = file({
  apiVersion: 'kustomize.config.k8s.io/v1beta1',
  kind: 'Kustomization',
  resources: resources,
});

// What Argo CD and Flux read, where neither is chosen.
local care(wave, options='', stays=false) =
  (if options == '' then {} else { 'argocd.argoproj.io/sync-options': options })
  + { 'argocd.argoproj.io/sync-wave': wave }
  + (if stays then { 'kustomize.toolkit.fluxcd.io/prune': 'disabled' } else {});
local asked = 'Prune=confirm,Delete=confirm';

local namespaceOf(tenant) = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: tenant.name,
    labels: {
      'gpuplan.dev/tenant': tenant.name,
      'pod-security.kubernetes.io/enforce': 'baseline',
      'pod-security.kubernetes.io/warn': 'baseline',
    },
    annotations: care('-20', asked, stays=true),
  },
};

local quotaOf(tenant) = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'gpuplan', namespace: tenant.name, annotations: care('20') },
  spec: {
    hard: {
      ['requests.' + resource]: if resource == tenant.resource then std.toString(tenant.cap) else '0'
      for resource in data.resources
    },
  },
};

local membersOf(tenant) = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'gpuplan-edit', namespace: tenant.name, annotations: care('30') },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: tenant.group }],
};

local grantsOf(tenant) = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'grants-' + tenant.name,
    namespace: 'gpuplan-system',
    annotations: care('-10', 'PruneLast=true', stays=true),
  },
  data: {
    tenant: tenant.name,
    pools: tenant.pool + '\n',
    grants: '%s %s any\n' % [tenant.pool, tenant.resource],
    priorityClasses: std.join('\n', tenant.classes) + '\n',
  },
};

local bindingOf(tenant) = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: {
    name: 'gpuplan-grants-' + tenant.name,
    annotations: care('21', asked, stays=true),
  },
  spec: {
    policyName: 'gpuplan-grants',
    paramRef: { name: 'grants-' + tenant.name, namespace: 'gpuplan-system', parameterNotFoundAction: 'Deny' },
    matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': tenant.name } } },
    validationActions: ['Deny', 'Audit'],
  },
};

local nodesOf(pool) = {
  apiVersion: 'nfd.k8s-sigs.io/v1alpha1',
  kind: 'NodeFeatureRule',
  metadata: {
    name: 'gpuplan-pool-' + pool.name,
    annotations: care('10', 'SkipDryRunOnMissingResource=true,' + asked + ',PruneLast=true', stays=true),
  },
  spec: {
    rules: [{
      name: pool.name,
      labels: {
        'gpuplan.dev/pool': pool.name,
        'nvidia.com/device-plugin.config': pool.name,
        'nvidia.com/mig.config': pool.layout,
      },
      taints: [{ key: 'nvidia.com/gpu', value: pool.name, effect: 'NoSchedule' }],
      matchFeatures: [
        {
          feature: 'system.name',
          matchExpressions: { nodename: { op: 'InRegexp', value: ['^(?:%s)$' % pool.pattern] } },
        },
        {
          feature: 'pci.device',
          matchExpressions: {
            vendor: { op: 'In', value: ['10de'] },
            class: { op: 'In', value: ['0300', '0302'] },
          },
        },
      ],
    }],
  },
};

local classOf(class) = {
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name: class.name, annotations: care('-15', asked, stays=true) },
  value: class.value,
  preemptionPolicy: 'PreemptLowerPriority',
  description: 'Class %s.' % class.name,
};

local tenantFiles(tenant) =
  local folder = 'fleet/namespaces/' + tenant.name;
  local objects = {
    ['namespace-%s.yaml' % tenant.name]: namespaceOf(tenant),
    'resourcequota-gpuplan.yaml': quotaOf(tenant),
    'rolebinding-gpuplan-edit.yaml': membersOf(tenant),
    ['configmap-grants-%s.yaml' % tenant.name]: grantsOf(tenant),
    ['validatingadmissionpolicybinding-gpuplan-grants-%s.yaml' % tenant.name]: bindingOf(tenant),
  };
  { [folder + '/' + name]: file(objects[name]) for name in std.objectFields(objects) }
  + { [folder + '/kustomization.yaml']: kustomization(std.objectFields(objects)) };

local merged(maps) = { [name]: map[name] for map in maps for name in std.objectFields(map) };

merged([tenantFiles(tenant) for tenant in data.tenants])
+ {
  ['fleet/partitions/%s/nodefeaturerule-gpuplan-pool-%s.yaml' % [pool.name, pool.name]]: file(nodesOf(pool))
  for pool in data.pools
}
+ {
  ['fleet/partitions/%s/kustomization.yaml' % pool.name]: kustomization([
    'nodefeaturerule-gpuplan-pool-%s.yaml' % pool.name,
  ])
  for pool in data.pools
}
+ {
  ['fleet/scheduling/priorityclass-%s.yaml' % class.name]: file(classOf(class))
  for class in data.classes
}
+ {
  'fleet/namespaces/kustomization.yaml': kustomization([tenant.name for tenant in data.tenants]),
  'fleet/partitions/kustomization.yaml': kustomization([pool.name for pool in data.pools]),
}
