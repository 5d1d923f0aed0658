package main

import (
	"fmt"

	v1 "github.com/NVIDIA/mig-parted/api/spec/v1"
	"github.com/NVIDIA/mig-parted/cmd/nvidia-mig-parted/assert"
	"github.com/NVIDIA/mig-parted/pkg/types"
)

func readMigFile(text string) (*v1.Spec, error) {
	return inFile(text, func(path string) (*v1.Spec, error) {
		return assert.ParseConfigFile(&assert.Flags{ConfigFile: path})
	})
}

// A gpu has MIG on or off, and the profiles of its instances.
type gpu struct {
	migEnabled bool
	instances  []string
}

// partition gives the GPUs of a node after `nvidia-mig-parted apply`, which goes through the entry's items in order and
// through the GPUs that each of them matches.
func partition(spec *v1.Spec, node node) ([]gpu, error) {
	items, err := assert.GetSelectedMigConfig(&assert.Flags{SelectedConfig: node.MigConfig}, spec)
	if err != nil {
		return nil, err
	}
	gpus := make([]gpu, node.GPUs)
	named := make([]bool, node.GPUs)
	for _, item := range items {
		for i := range gpus {
			if !item.MatchesDeviceFilter(node.DeviceID) || !item.MatchesDevices(i) {
				continue
			}
			// Modes are set first, and the last one stays; an item that wants another then fails:
			// https://github.com/NVIDIA/mig-parted/blob/v0.13.1/cmd/nvidia-mig-parted/apply/config.go
			if named[i] && gpus[i].migEnabled != item.MigEnabled {
				return nil, fmt.Errorf("GPU %d: MIG is both enabled and disabled", i)
			}
			named[i] = true
			gpus[i] = gpu{migEnabled: item.MigEnabled, instances: flatten(item.MigDevices)}
		}
	}
	return gpus, nil
}

func flatten(config types.MigConfig) []string {
	var profiles []string
	for profile, count := range config {
		for range count {
			profiles = append(profiles, profile)
		}
	}
	return profiles
}
