# The images of Weir, from one program: `sidecar`, `operator` and `redirect-init`. See docs/images.md.
# `npm run images` builds all three; it also runs without BuildKit and, with bases made on the spot, without a registry.

# The build needs a shell, npm and, of Debian, dpkg. Its C library must not be newer than the one of the runtime base.
ARG BUILD_BASE=docker.io/library/node:26-bookworm-slim@sha256:2d49d876e96237d76de412761cf05dbfe5aee325cc4406a4d41d5824c5bb8beb
# glibc, libstdc++, libgcc, CA certificates and time zones; no shell. It must list its packages under /var/lib/dpkg.
ARG RUNTIME_BASE=gcr.io/distroless/cc-debian12:nonroot@sha256:bd2899c12b335c827750ccf2359879eab09c09b206023dcebea408947d54127c

FROM ${RUNTIME_BASE} AS runtime-base

FROM ${BUILD_BASE} AS build
WORKDIR /weir
# Node.js 26 is linked against it. A base that has it needs no network here.
RUN dpkg-query -W libatomic1 >/dev/null 2>&1 \
    || { apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*; }
COPY package.json package-lock.json .npmrc ./
# The lock file brings the Node.js that runs in the image, with its hash. No package has a script we need.
RUN npm ci --ignore-scripts
# What the base holds already: for the list of contents, and to copy nothing twice.
COPY --from=runtime-base /var/lib/dpkg /base/var/lib/dpkg
COPY --from=runtime-base /usr/share/doc /base/usr/share/doc
COPY . .
# Seconds since 1970: the time of every file in the layers.
ARG SOURCE_DATE_EPOCH=0
RUN node_modules/.bin/node scripts/build.ts --node /usr/local/bin/node \
    && node_modules/.bin/node scripts/image-contents/assemble.ts --part weir --base /base --out /image --epoch "$SOURCE_DATE_EPOCH"

FROM build AS build-redirect
RUN dpkg-query -W iptables >/dev/null 2>&1 \
    || { apt-get update && apt-get install -y --no-install-recommends iptables && rm -rf /var/lib/apt/lists/*; }
RUN node_modules/.bin/node scripts/image-contents/assemble.ts --part redirect --base /base --out /image --epoch "$SOURCE_DATE_EPOCH"

# The layers that all three share; the first changes with Node.js only.
FROM runtime-base AS weir
COPY --from=build /image/node /
COPY --from=build /image/weir /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# A number, so that the kubelet can tell that it is not root. Any other will do: nothing is owned, nothing is written.
USER 65532:65532
# With the flags that the first line of cli/main.ts has, of which a first line in here could have one.
ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "--heap-growing-percent=70", "--expose-gc", "/usr/local/bin/weir"]
ARG RUNTIME_BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$RUNTIME_BASE"

FROM weir AS operator
EXPOSE 8080 8443 9443
# The flags above are for many small processes; an operator is one, and edits cost it twice the time with them.
ENTRYPOINT ["/usr/local/bin/node", "/usr/local/bin/weir"]
CMD ["operator"]
LABEL org.opencontainers.image.title="Weir operator" \
      org.opencontainers.image.description="Watches rate limit policies, injects sidecars into pods and pushes rules to them."

FROM weir AS redirect-init
COPY --from=build-redirect /image/redirect /
# The pod gives it uid 0 and NET_ADMIN, and nothing else; without both it says so.
CMD ["redirect"]
LABEL org.opencontainers.image.title="Weir redirect-init" \
      org.opencontainers.image.description="Writes the rules that lead a pod's inbound connections to its sidecar."

FROM weir AS sidecar
EXPOSE 8080 15090
CMD ["run"]
LABEL org.opencontainers.image.title="Weir sidecar" \
      org.opencontainers.image.description="Holds the HTTP traffic of one pod at the rates its policies say."
