package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconcilePods runs the loop of sample-controller: an informer fills a queue, and workers drain it.
func reconcilePods(began time.Time, config *rest.Config, workers int) error {
	informer, err := informerOf(config, "json-stripped")
	if err != nil {
		return err
	}
	client := &client{informer: informer, handlers: 1}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				queue.Add(key)
			}
		},
	})
	if err != nil {
		return err
	}
	go informer.Run(make(chan struct{}))
	for !registered.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	for range workers {
		go func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				if object, exists, err := informer.GetStore().GetByKey(key); err == nil && exists {
					pod := object.(*v1.Pod)
					client.see(pod.Name, pod.ResourceVersion)
				}
				queue.Forget(key)
				queue.Done(key)
			}
		}()
	}
	return client.serveReconciled(began)
}

// reconcilePodsWithRuntime does the same with controller-runtime's manager and builder.
func reconcilePodsWithRuntime(began time.Time, config *rest.Config, workers int) error {
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	log.SetLogger(logr.Discard())
	manager, err := manager.New(config, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	background := context.Background()
	informer, err := manager.GetCache().GetInformer(background, &v1.Pod{})
	if err != nil {
		return err
	}
	client := &client{informer: informer.(cache.SharedIndexInformer), handlers: 1}
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		pod := &v1.Pod{}
		if err := manager.GetClient().Get(ctx, request.NamespacedName, pod); err != nil {
			return reconcile.Result{}, runtimeclient.IgnoreNotFound(err)
		}
		client.see(pod.Name, pod.ResourceVersion)
		return reconcile.Result{}, nil
	})
	options := controller.Options{MaxConcurrentReconciles: workers}
	err = builder.ControllerManagedBy(manager).For(&v1.Pod{}).WithOptions(options).Complete(reconciler)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(background) }()
	for !informer.HasSynced() {
		select {
		case err := <-failed:
			return err
		case <-time.After(time.Millisecond):
		}
	}
	return client.serveReconciled(began)
}

// serveReconciled answers commands once every cached object has been reconciled.
func (c *client) serveReconciled(began time.Time) error {
	for c.calls.Load() < int64(c.objects()) {
		time.Sleep(time.Millisecond)
	}
	return c.serve(began)
}
