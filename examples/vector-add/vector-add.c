/* Says which GPUs this container was given, and adds two vectors on each of
 * them through the CUDA driver API, where a driver answers.
 *
 * Exit status: 0 when there is a device and everything that could be computed
 * came out right, 1 otherwise. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#define DRIVER_FOLDER "/usr/local/nvidia"
enum { LENGTH = 1 << 20, BLOCK = 256 };

/* c[i] = a[i] + b[i], for any GPU: the driver compiles it. */
static const char kernel[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn) {\n"
	"  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %d<8>;\n"
	"  ld.param.u64 %d1, [pa]; ld.param.u64 %d2, [pb]; ld.param.u64 %d3, [pc]; ld.param.u32 %r1, [pn];\n"
	"  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"  setp.ge.u32 %p, %r5, %r1;\n"
	"  @%p bra done;\n"
	"  mul.wide.u32 %d4, %r5, 4;\n"
	"  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;\n"
	"  ld.global.f32 %f1, [%d5]; ld.global.f32 %f2, [%d6];\n"
	"  add.f32 %f3, %f1, %f2;\n"
	"  st.global.f32 [%d7], %f3;\n"
	"done: ret;\n}\n";

/* The part of the driver API that is needed, found at run time: the program
 * starts and can say what is wrong where there is no driver. */
typedef int result;
typedef unsigned long long pointer;
static struct {
	result (*Init)(unsigned);
	result (*DeviceGetCount)(int *);
	result (*DeviceGet)(int *, int);
	result (*DeviceGetName)(char *, int, int);
	result (*DeviceTotalMem)(size_t *, int);
	result (*PrimaryCtxRetain)(void **, int);
	result (*PrimaryCtxRelease)(int);
	result (*CtxSetCurrent)(void *);
	result (*ModuleLoadData)(void **, const void *);
	result (*ModuleGetFunction)(void **, void *, const char *);
	result (*MemAlloc)(pointer *, size_t);
	result (*MemFree)(pointer);
	result (*CopyIn)(pointer, const void *, size_t);
	result (*CopyOut)(void *, pointer, size_t);
	result (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
	result (*Synchronize)(void);
	result (*GetErrorString)(result, const char **);
} cu;

static int find_driver(void) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		library = dlopen(DRIVER_FOLDER "/lib64/libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("driver:   none answers (%s)\n", dlerror());
		return 0;
	}
	const struct {
		void **function;
		const char *name;
	} names[] = {
		{(void **)&cu.Init, "cuInit"},
		{(void **)&cu.DeviceGetCount, "cuDeviceGetCount"},
		{(void **)&cu.DeviceGet, "cuDeviceGet"},
		{(void **)&cu.DeviceGetName, "cuDeviceGetName"},
		{(void **)&cu.DeviceTotalMem, "cuDeviceTotalMem_v2"},
		{(void **)&cu.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
		{(void **)&cu.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"},
		{(void **)&cu.CtxSetCurrent, "cuCtxSetCurrent"},
		{(void **)&cu.ModuleLoadData, "cuModuleLoadData"},
		{(void **)&cu.ModuleGetFunction, "cuModuleGetFunction"},
		{(void **)&cu.MemAlloc, "cuMemAlloc_v2"},
		{(void **)&cu.MemFree, "cuMemFree_v2"},
		{(void **)&cu.CopyIn, "cuMemcpyHtoD_v2"},
		{(void **)&cu.CopyOut, "cuMemcpyDtoH_v2"},
		{(void **)&cu.Launch, "cuLaunchKernel"},
		{(void **)&cu.Synchronize, "cuCtxSynchronize"},
		{(void **)&cu.GetErrorString, "cuGetErrorString"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		*names[i].function = dlsym(library, names[i].name);
		if (!*names[i].function) {
			printf("driver:   %s is missing from it\n", names[i].name);
			return 0;
		}
	}
	return 1;
}

/* check says what failed; the caller goes on to say that nothing was added. */
static int check(const char *what, result r) {
	const char *reason = "unknown error";
	if (r == 0)
		return 1;
	cu.GetErrorString(r, &reason);
	printf("          %s: %s\n", what, reason ? reason : "unknown error");
	return 0;
}

static int add_on(int device) {
	static float a[LENGTH], b[LENGTH], c[LENGTH];
	const size_t bytes = sizeof a;
	void *context, *module, *function;
	pointer da, db, dc;
	unsigned length = LENGTH;

	for (int i = 0; i < LENGTH; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	memset(c, 0xff, bytes);
	if (!check("context", cu.PrimaryCtxRetain(&context, device)) || !check("context", cu.CtxSetCurrent(context)) ||
	    !check("load the kernel", cu.ModuleLoadData(&module, kernel)) ||
	    !check("find the kernel", cu.ModuleGetFunction(&function, module, "add")) ||
	    !check("allocate", cu.MemAlloc(&da, bytes)) || !check("allocate", cu.MemAlloc(&db, bytes)) ||
	    !check("allocate", cu.MemAlloc(&dc, bytes)) || !check("copy in", cu.CopyIn(da, a, bytes)) ||
	    !check("copy in", cu.CopyIn(db, b, bytes)))
		return 0;
	void *arguments[] = {&da, &db, &dc, &length};
	if (!check("launch", cu.Launch(function, LENGTH / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL)) ||
	    !check("compute", cu.Synchronize()) || !check("copy out", cu.CopyOut(c, dc, bytes)))
		return 0;
	for (int i = 0; i < LENGTH; i++) {
		if (c[i] != a[i] + b[i]) {
			printf("          element %d is %g, not %g\n", i, c[i], a[i] + b[i]);
			return 0;
		}
	}
	cu.MemFree(da);
	cu.MemFree(db);
	cu.MemFree(dc);
	cu.PrimaryCtxRelease(device);
	return 1;
}

/* The device nodes of whole GPUs: /dev/nvidia0, /dev/nvidia1 and so on. */
static int count_nodes(void) {
	int count = 0;
	struct dirent *entry;
	DIR *folder = opendir("/dev");
	while (folder && (entry = readdir(folder))) {
		char rest;
		int number;
		struct stat info;
		char path[300];
		if (sscanf(entry->d_name, "nvidia%d%c", &number, &rest) != 1)
			continue;
		snprintf(path, sizeof path, "/dev/%s", entry->d_name);
		if (stat(path, &info) != 0 || !S_ISCHR(info.st_mode))
			continue;
		printf("device:   %s (character device %u:%u)\n", path, major(info.st_rdev), minor(info.st_rdev));
		count++;
	}
	if (folder)
		closedir(folder);
	return count;
}

static int look_at_driver_folder(void) {
	struct statvfs fs;
	if (statvfs(DRIVER_FOLDER, &fs) != 0) {
		printf("driver:   no folder %s (%s)\n", DRIVER_FOLDER, strerror(errno));
		return 0;
	}
	printf("driver:   folder %s, %s\n", DRIVER_FOLDER, fs.f_flag & ST_RDONLY ? "read-only" : "WRITABLE");
	return 1;
}

int main(void) {
	const char *visible = getenv("NVIDIA_VISIBLE_DEVICES");
	int nodes = count_nodes(), devices = 0, right = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("visible:  %s\n", visible ? visible : "(NVIDIA_VISIBLE_DEVICES is not set)");
	if (nodes == 0)
		printf("device:   none; ask for one with limits: {nvidia.com/gpu: 1}\n");
	if (!look_at_driver_folder() || nodes == 0)
		return 1;
	if (!find_driver()) {
		printf("result:   %d device%s, nothing computed: no CUDA driver stands behind %s (simulated hardware)\n",
		       nodes, nodes == 1 ? "" : "s", nodes == 1 ? "it" : "them");
		return 0;
	}
	if (!check("start the driver", cu.Init(0)) || !check("count the devices", cu.DeviceGetCount(&devices)))
		return 1;
	for (int i = 0; i < devices; i++) {
		char name[100] = "";
		size_t memory = 0;
		int device;
		if (!check("open the device", cu.DeviceGet(&device, i)))
			return 1;
		cu.DeviceGetName(name, sizeof name, device);
		cu.DeviceTotalMem(&memory, device);
		printf("computes: %s, %zu MiB\n", name, memory >> 20);
		if (add_on(device))
			right++;
	}
	printf("result:   added two vectors of %d numbers on %d of %d device%s\n", LENGTH, right, nodes, nodes == 1 ? "" : "s");
	return right == nodes ? 0 : 1;
}
