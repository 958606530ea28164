// The client-go side of `cargo xtask bench`: a shared informer of pods, a controller of them, or a work queue.
//
// Its arguments and commands are those of the programs in peers/bench: see src/talk.rs there.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const byNode = "spec.nodeName"

func main() {
	began := time.Now()
	kubeconfig := flag.String("kubeconfig", "", "the server and how to get in")
	form := flag.String("form", "json", "json, json-stripped, protobuf, protobuf-stripped or metadata; of controllers, controller or controller-runtime")
	handlers := flag.Int("handlers", 1, "how many handlers are told of everything; of a controller, how many workers it has")
	index := flag.Bool("index", false, "whether there is an index by node")
	queue := flag.String("queue", "", "a work queue in place of an informer: plain, rate-limited or controller-runtime")
	flag.Parse()
	if *queue != "" {
		if err := serveQueue(*queue); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(began, *kubeconfig, *form, *handlers, *index); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(began time.Time, kubeconfig, form string, handlers int, index bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	switch form {
	case "controller":
		return reconcilePods(began, config, handlers)
	case "controller-runtime":
		return reconcilePodsWithRuntime(began, config, handlers)
	}
	informer, err := informerOf(config, form)
	if err != nil {
		return err
	}
	if index {
		nodes := cache.Indexers{byNode: func(object any) ([]string, error) {
			return []string{object.(*v1.Pod).Spec.NodeName}, nil
		}}
		if err := informer.AddIndexers(nodes); err != nil {
			return err
		}
	}
	client := &client{informer: informer, handlers: handlers}
	synced := []cache.InformerSynced{informer.HasSynced}
	for range handlers {
		registered, err := informer.AddEventHandler(client.handler())
		if err != nil {
			return err
		}
		synced = append(synced, registered.HasSynced)
	}
	stop := make(chan struct{})
	go informer.Run(stop)
	// WaitForCacheSync polls every 100 ms, which should not be measured.
	for _, has := range synced {
		for !has() {
			time.Sleep(time.Millisecond)
		}
	}
	return client.serve(began)
}

func informerOf(config *rest.Config, form string) (cache.SharedIndexInformer, error) {
	options := []informers.SharedInformerOption{}
	switch form {
	case "json", "protobuf":
	case "json-stripped", "protobuf-stripped":
		options = append(options, informers.WithTransform(stripManagedFields))
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := metadatainformer.NewSharedInformerFactory(client, 0)
		return factory.ForResource(v1.SchemeGroupVersion.WithResource("pods")).Informer(), nil
	default:
		return nil, fmt.Errorf("there is no form %q", form)
	}
	// The default for built-in kinds is protobuf.
	if form == "json" || form == "json-stripped" {
		config.ContentType = runtime.ContentTypeJSON
		config.AcceptContentTypes = runtime.ContentTypeJSON
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	return factory.Core().V1().Pods().Informer(), nil
}

// stripManagedFields is a transform that many programs use.
func stripManagedFields(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

// handler only counts, as the handlers of the other programs do.
func (c *client) handler() cache.ResourceEventHandler {
	calls := int64(0)
	see := func(object any) {
		if meta, ok := object.(metav1.Object); ok {
			c.see(meta.GetName(), meta.GetResourceVersion())
		}
		if expected := c.relist.Load(); expected > 0 {
			calls++
			if calls == expected {
				c.end()
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
		DeleteFunc: see,
	}
}
