package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// enforcePolicies turns NetworkPolicy objects into iptables rules of the node until it is told to stop. The rules stay
// behind then; the stage removes them, since it also has to when this process was killed.
func enforcePolicies(args []string) error {
	flags := flag.NewFlagSet("network-policy", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	node := flags.String("hostname-override", "", "name of this node")
	services := flags.String("service-cluster-ip-range", "", "CIDR of the cluster's Services")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := options.NewKubeRouterConfig()
	config.Kubeconfig = *kubeconfig
	config.HostnameOverride = *node
	config.ClusterIPCIDRs = []string{*services}
	config.RunFirewall = true
	config.EnableIPv4 = true
	config.EnableIPv6 = false

	access, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(stop) {
		if !synced {
			return fmt.Errorf("no list of %s from the API server", kind)
		}
	}

	commands, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	var setMutex sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &setMutex, commands, sets)
	if err != nil {
		return err
	}
	if _, err := pods.AddEventHandler(controller.PodEventHandler); err != nil {
		return err
	}
	if _, err := namespaces.AddEventHandler(controller.NamespaceEventHandler); err != nil {
		return err
	}
	if _, err := policies.AddEventHandler(controller.NetworkPolicyEventHandler); err != nil {
		return err
	}

	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() { // the controller stops working when nobody takes its heartbeats
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(beats, stop, &running)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	<-told
	close(stop)
	finished := make(chan struct{})
	go func() { running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(5 * time.Second):
	}
	return nil
}
