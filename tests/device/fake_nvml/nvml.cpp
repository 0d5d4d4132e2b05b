// What NVML answers on a machine with one device. Every question about energy finds 7 J more.
extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int one;
  *device = &one;
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* use) {
  *use = {42, 7};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {4000, 3000, 1000};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 30000;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long counted = 1000;
  *millijoules = counted += 7000;
  return 0;
}
}
