# Warpsmith with CUDA kernels and NCCL. The driver comes from the host (NVIDIA Container Toolkit); the CUDA compiler and
# libraries from Python packages that ./dev installs.
#   docker build -f docker/cuda.Dockerfile -t warpsmith:cuda .
# Untested, as docker/Dockerfile.
FROM debian:12

RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /opt/warpsmith
WORKDIR /opt/warpsmith
RUN ./dev build cuda
ENV PATH=/opt/warpsmith/build/cuda/bin:$PATH
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["warpsmith"]
CMD ["doctor"]
