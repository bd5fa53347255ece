# SPDX-License-Identifier: MIT
# docker build -t bench . && docker run -v "$PWD/results:/data/results" bench --variant xl --mem 512
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git gcc make
COPY . /src
WORKDIR /src
RUN make deps && make && scripts/deb.sh && mv build/release/*.deb /bench.deb

FROM debian:12
COPY --from=build /bench.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/bench.deb gnuplot-nox && \
    rm -rf /tmp/bench.deb /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["bench"]
