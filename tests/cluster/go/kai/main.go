// One program for the parts of KAI-Scheduler, so that what they share is linked once.
//
//	kai scheduler|podgrouper|binder KUBECONFIG FLAGS   the program of that name
//	kai webhooks KUBECONFIG FLAGS                      the webhooks of queues, pod groups and pods, on one port
//	kai objects KUBECONFIG                             what its operator would install, as a list in JSON
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/NVIDIA/KAI-scheduler/cmd/binder/app"
	podgrouper "github.com/NVIDIA/KAI-scheduler/cmd/podgrouper/app"
	scheduler "github.com/NVIDIA/KAI-scheduler/cmd/scheduler/app"
	"github.com/NVIDIA/KAI-scheduler/pkg/admission/plugins"
	admissiongpusharing "github.com/NVIDIA/KAI-scheduler/pkg/admission/webhook/v1alpha2/gpusharing"
	"github.com/NVIDIA/KAI-scheduler/pkg/admission/webhook/v1alpha2/podhooks"
	kaiv1 "github.com/NVIDIA/KAI-scheduler/pkg/apis/kai/v1"
	schedulingv2 "github.com/NVIDIA/KAI-scheduler/pkg/apis/scheduling/v2"
	schedulingv2alpha2 "github.com/NVIDIA/KAI-scheduler/pkg/apis/scheduling/v2alpha2"
	binderplugins "github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins"
	"github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins/gpusharing"
	k8splugins "github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins/k8s-plugins"
	"github.com/NVIDIA/KAI-scheduler/pkg/common/constants"
	"github.com/NVIDIA/KAI-scheduler/pkg/operator/operands"
	"github.com/NVIDIA/KAI-scheduler/pkg/operator/operands/admission"
	podgroupcontroller "github.com/NVIDIA/KAI-scheduler/pkg/operator/operands/pod_group_controller"
	queuecontroller "github.com/NVIDIA/KAI-scheduler/pkg/operator/operands/queue_controller"
	shards "github.com/NVIDIA/KAI-scheduler/pkg/operator/operands/scheduler"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var commands = map[string]func() error{
	"scheduler":  scheduler.RunApp,
	"podgrouper": podgrouper.Run,
	"binder":     bind,
	"webhooks":   serveWebhooks,
	"objects":    printObjects,
}

func main() {
	if len(os.Args) < 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kai scheduler|podgrouper|binder|webhooks|objects KUBECONFIG [FLAGS]")
		os.Exit(2)
	}
	command := commands[os.Args[1]]
	err := os.Setenv("KUBECONFIG", os.Args[2])
	os.Args = slices.Delete(os.Args, 1, 3)
	if err == nil {
		err = command()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The plugins are those of cmd/binder/main.go.
func bind() error {
	options := app.InitOptions(nil)
	pflag.Parse()
	ctrl.SetLogger(zap.New())
	binder, err := app.New(options, ctrl.GetConfigOrDie())
	if err != nil {
		return err
	}
	kubernetes, err := k8splugins.New(
		binder.K8sInterface, binder.InformerFactory, int64(options.VolumeBindingTimeoutSeconds))
	if err != nil {
		return err
	}
	registered := binderplugins.New()
	registered.RegisterPlugin(kubernetes)
	registered.RegisterPlugin(gpusharing.New(binder.Client, options.GpuCdiEnabled))
	binder.RegisterPlugins(registered)
	return binder.Run(ctrl.SetupSignalHandler())
}

// The programs with these webhooks serve them all on port 9443, so that two cannot run on one machine.
func serveWebhooks() error {
	port := flag.Int("port", 0, "the port on 127.0.0.1")
	certificates := flag.String("cert-dir", "", "the folder of tls.crt and tls.key")
	probe := flag.String("health-probe-bind-address", "0", "the address of /readyz")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	hooks := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates})
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probe,
		WebhookServer:          hooks,
	})
	if err != nil {
		return err
	}
	if err := (&schedulingv2.Queue{}).SetupWebhookWithManager(manager); err != nil {
		return err
	}
	if err := (&schedulingv2alpha2.PodGroup{}).SetupWebhookWithManager(manager); err != nil {
		return err
	}
	pods := plugins.New()
	pods.RegisterPlugin(admissiongpusharing.New(manager.GetClient(), true))
	if err := ctrl.NewWebhookManagedBy(manager).For(&corev1.Pod{}).
		WithDefaulter(podhooks.NewPodMutator(manager.GetClient(), pods, constants.DefaultSchedulerName)).
		WithValidator(podhooks.NewPodValidator(manager.GetClient(), pods, constants.DefaultSchedulerName)).
		Complete(); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("webhooks", hooks.StartedChecker()); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// The shards are the cluster's; all else is what the operator's own code says for a Config that says nothing.
func printObjects() error {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	reader, err := client.New(ctrl.GetConfigOrDie(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	ctx := context.Background()
	found := &kaiv1.SchedulingShardList{}
	if err := reader.List(ctx, found); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	config := &kaiv1.Config{}
	config.Spec.SetDefaultsWhereNeeded()
	parts := []operands.Operand{
		&queuecontroller.QueueController{}, &podgroupcontroller.PodGroupController{}, &admission.Admission{},
	}
	for index := range found.Items {
		shard := &found.Items[index]
		shard.Spec.SetDefaultsWhereNeeded()
		parts = append(parts, shards.NewSchedulerForShard(shard))
	}
	objects := []client.Object{}
	for _, part := range parts {
		wanted, err := part.DesiredState(ctx, reader, config)
		if err != nil {
			return fmt.Errorf("%s: %w", part.Name(), err)
		}
		objects = append(objects, wanted...)
	}
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	return json.NewEncoder(os.Stdout).Encode(objects)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		kaiv1.AddToScheme,
		schedulingv2.AddToScheme,
		schedulingv2alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
