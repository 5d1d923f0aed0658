package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/info"
	"github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"github.com/NVIDIA/k8s-device-plugin/internal/rm"
	"github.com/urfave/cli/v2"
)

// readPluginFile reads a file as the plugin does when it starts; without one there are flags alone.
func readPluginFile(text *string, strategy, mpsRoot string) (*v1.Config, error) {
	if text == nil {
		empty := ""
		text = &empty
	}
	return inFile(*text, func(path string) (*v1.Config, error) {
		// These two flags bear on what is published: https://github.com/NVIDIA/k8s-device-plugin/blob/v0.19.1/cmd/nvidia-device-plugin/main.go
		flags := []cli.Flag{
			&cli.StringFlag{Name: "config-file"},
			&cli.StringFlag{Name: "mig-strategy", Value: v1.MigStrategyNone},
			&cli.StringFlag{Name: "mps-root"},
		}
		arguments := []string{"", "--config-file", path}
		if strategy != "" {
			arguments = append(arguments, "--mig-strategy", strategy)
		}
		if mpsRoot != "" {
			arguments = append(arguments, "--mps-root", mpsRoot)
		}
		var config *v1.Config
		app := cli.App{Flags: flags, Writer: io.Discard, ErrWriter: io.Discard, Action: func(context *cli.Context) (err error) {
			config, err = v1.NewConfig(context, flags)
			return err
		}}
		if err := app.Run(arguments); err != nil {
			return nil, err
		}
		v1.DisableResourceNamingInConfig(config)
		return config, validate(config)
	})
}

// validate is what validateFlags of the plugin's package main, which cannot be imported, says of the file.
func validate(config *v1.Config) error {
	strategy := *config.Flags.MigStrategy
	if config.Sharing.SharingStrategy() == v1.SharingStrategyMPS {
		if strategy == v1.MigStrategyMixed {
			return errors.New("using --mig-strategy=mixed is not supported with MPS")
		}
		if *config.Flags.MpsRoot == "" {
			return errors.New("using MPS requires --mps-root to be specified")
		}
	}
	if !slices.Contains([]string{v1.MigStrategyNone, v1.MigStrategySingle, v1.MigStrategyMixed}, strategy) {
		return fmt.Errorf("unknown MIG strategy: %v", strategy)
	}
	return nil
}

// publish counts the devices of each resource, named and shared by the plugin's resource manager.
//
// For instances it reads the paths of their devices below /proc, which only a GPU's driver makes. So an instance is
// shown to it as a GPU whose product is the instance's profile, with the patterns for instances in front.
func publish(config *v1.Config, gpus []gpu) (map[string]int, error) {
	boards, err := visible(*config.Flags.MigStrategy, gpus)
	if err != nil {
		return nil, err
	}
	library := &library{boards: boards}
	if err := rm.AddDefaultResourcesToConfig(withNvml{}, library.nvml(), library, config); err != nil {
		return nil, err
	}
	config.Resources.GPUs = append(config.Resources.MIGs, config.Resources.GPUs...)
	none := v1.MigStrategyNone
	config.Flags.MigStrategy = &none
	devices, err := rm.NewDeviceMap(library, config, info.PlatformNVML)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for name, devices := range devices {
		counts[string(name)] = len(devices)
	}
	// https://github.com/NVIDIA/k8s-device-plugin/blob/v0.19.1/internal/plugin/mps.go
	isPartitioned := slices.ContainsFunc(boards, func(board board) bool { return board.isInstance })
	if isPartitioned && config.Sharing.SharingStrategy() == v1.SharingStrategyMPS {
		return nil, errors.New("sharing using MPS is not supported for MIG devices")
	}
	return counts, nil
}

// visible gives what a strategy lets the plugin see, and refuses what buildDeviceMapFromConfigResources refuses:
// https://github.com/NVIDIA/k8s-device-plugin/blob/v0.19.1/internal/rm/device_map.go
func visible(strategy string, gpus []gpu) ([]board, error) {
	var boards []board
	profiles, modes := map[string]bool{}, map[bool]bool{}
	for i, gpu := range gpus {
		modes[gpu.migEnabled] = true
		if !gpu.migEnabled || strategy == v1.MigStrategyNone {
			boards = append(boards, board{name: "GPU", uuid: fmt.Sprintf("GPU-%d", i)})
			continue
		}
		if len(gpu.instances) == 0 && strategy == v1.MigStrategySingle {
			return nil, fmt.Errorf("device %d has no MIG devices configured", i)
		}
		for j, profile := range gpu.instances {
			profiles[profile] = true
			boards = append(boards, board{name: profile, uuid: fmt.Sprintf("MIG-%d-%d", i, j), isInstance: true})
		}
	}
	if strategy == v1.MigStrategySingle && len(profiles) > 1 {
		return nil, errors.New("more than one MIG device type present on node")
	}
	if strategy == v1.MigStrategySingle && len(modes) > 1 {
		return nil, errors.New("all devices on the node must be configured with the same migEnabled value")
	}
	return boards, nil
}
