# syntax=docker/dockerfile:1
# The image of one rouse, about 120 MB. It is Debian and not distroless, since agents are programs that rouse starts: they
# need a shell, certificates, git and whatever else you add. To add an agent's own program:
#
#	FROM rouse
#	RUN apt-get update && apt-get install -y --no-install-recommends nodejs npm && npm install -g … && rm -rf /var/lib/apt/lists/*
#
# The server is root in the container, so that each workspace's agents run under a user id of their own and cannot read its key
# and its tokens. It needs few of root's rights: docker-compose.yml names them. To log an agent's program in:
#
#	docker compose exec rouse rouse agent-shell --workspace SLUG

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w ${VERSION:+-X main.release=$VERSION}" -o /rouse ./cmd/rouse

FROM debian:bookworm-slim
# tini reaps what agents leave behind and passes signals on; curl is the health check and a handy tool for agents.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl git tini \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -m 0711 /var/lib/rouse
# The names of agents' accounts: without CAP_SYS_ADMIN the server cannot give each a list of users with its own.
RUN for uid in $(seq 70000 70254); do \
        echo "rouse-$uid:x:$uid:$uid:agents of a workspace:/var/lib/rouse/homes/rouse-$uid:/bin/bash" >>/etc/passwd \
        && echo "rouse-$uid:x:$uid:" >>/etc/group || exit 1; \
    done
COPY --from=build /rouse /usr/local/bin/rouse
WORKDIR /var/lib/rouse
# The first start makes a token: docker exec CONTAINER cat /var/lib/rouse/token. ROUSE_BOOTSTRAP_TOKEN gives one of your own.
ENV ROUSE_ADDR=0.0.0.0:8080 ROUSE_DATA_DIR=/var/lib/rouse ROUSE_LOG_FORMAT=json ROUSE_AGENT_UIDS=70000-70255
VOLUME /var/lib/rouse
EXPOSE 8080
# The time to end is that of live runs (ROUSE_DRAIN, 30 s) and of the rest: give it 45 s (docker stop --time 45).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["tini", "--", "rouse"]
CMD ["serve"]
