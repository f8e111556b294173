# The image of a public or a team's server: one program, no shell, nobody's user.
#
# Promises: the last stage holds the program and a project (`DATA`), warmed, so that it answers from a read-only disk at once; it runs as
# 65534 and writes nowhere but /tmp. `--target runtime` is the program alone, for a project that is mounted at /data (deploy/compose.yml).
# Does not: hold a secret, or build what its tests test: tests/run does.
#
#   docker build -t runlore .                       # with the demo's logs, to look at
#   docker build -t runlore --build-arg DATA=my-project .
#   docker build -t runlore --target runtime .

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock rustfmt.toml clippy.toml ./
COPY src ./src
COPY config ./config
COPY tests ./tests
RUN cargo build --locked --profile dist --bin runlore && cp target/dist/runlore /runlore

# glibc and its companions, certificates, and nothing to run but what we bring.
FROM gcr.io/distroless/cc-debian12 AS runtime
COPY --from=build /runlore /usr/local/bin/runlore
COPY config/example.container.toml /etc/runlore/config.toml
USER 65534:65534
WORKDIR /data
EXPOSE 8098
ENTRYPOINT ["/usr/local/bin/runlore"]
CMD ["--help"]
# Nothing in it needs a shell, this neither.
HEALTHCHECK --interval=10s --timeout=6s --start-period=120s --retries=3 \
  CMD ["/usr/local/bin/runlore", "health", "http://127.0.0.1:8098/mcp/health"]

FROM runtime AS release
ARG DATA=tests/fixtures/demo
COPY --chown=65534:65534 ${DATA} /data
RUN ["/usr/local/bin/runlore", "warm", "--project", "/data"]
