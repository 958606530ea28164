# Images of the tool and of the operator example:
#
#   docker build --target kubectl-informer --tag kubectl-informer .
#   docker build --target operator --tag website-operator:0.1.0 .    # deploy/operator runs it
#
# zstd and ring are C code, and the base has the C library that they need and nothing else: no shell, no package
# manager. Programs run as the user `nonroot`, 65532.
FROM rust:1-bookworm AS build
WORKDIR /source
COPY . .
# As in .cargo/config.toml: `cargo build` reads the version of Kubernetes there.
RUN cargo build --locked --profile dist --package kubectl-informer
RUN cargo build --locked --profile dist --package kube-informer --example operator

FROM gcr.io/distroless/cc-debian12:nonroot AS base
USER 65532:65532

FROM base AS operator
COPY --from=build /source/target/dist/examples/operator /operator
ENTRYPOINT ["/operator"]

FROM base AS kubectl-informer
COPY --from=build /source/target/dist/kubectl-informer /kubectl-informer
ENTRYPOINT ["/kubectl-informer"]
