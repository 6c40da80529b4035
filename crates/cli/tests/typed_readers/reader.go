// Reads fio's json+ with typed fields, as programs on Kubernetes do: a number that is no integer where fio has
// one is an error.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type latency struct {
	Min        int64            `json:"min"`
	Max        int64            `json:"max"`
	Mean       float64          `json:"mean"`
	Stddev     float64          `json:"stddev"`
	N          int64            `json:"N"`
	Percentile map[string]int64 `json:"percentile"`
	Bins       map[string]int64 `json:"bins"`
}

type way struct {
	IOBytes     int64   `json:"io_bytes"`
	IOKBytes    int64   `json:"io_kbytes"`
	BWBytes     int64   `json:"bw_bytes"`
	BW          int64   `json:"bw"`
	Iops        float64 `json:"iops"`
	Runtime     int64   `json:"runtime"`
	TotalIos    int64   `json:"total_ios"`
	ShortIos    int64   `json:"short_ios"`
	DropIos     int64   `json:"drop_ios"`
	SlatNs      latency `json:"slat_ns"`
	ClatNs      latency `json:"clat_ns"`
	LatNs       latency `json:"lat_ns"`
	BwMin       int64   `json:"bw_min"`
	BwMax       int64   `json:"bw_max"`
	BwAgg       float64 `json:"bw_agg"`
	BwMean      float64 `json:"bw_mean"`
	BwDev       float64 `json:"bw_dev"`
	BwSamples   int64   `json:"bw_samples"`
	IopsMin     int64   `json:"iops_min"`
	IopsMax     int64   `json:"iops_max"`
	IopsMean    float64 `json:"iops_mean"`
	IopsStddev  float64 `json:"iops_stddev"`
	IopsSamples int64   `json:"iops_samples"`
}

type job struct {
	Jobname string `json:"jobname"`
	Groupid int64  `json:"groupid"`
	Error   int64  `json:"error"`
	Eta     int64  `json:"eta"`
	Elapsed int64  `json:"elapsed"`
	Options struct {
		Name     string `json:"name"`
		Rw       string `json:"rw"`
		Iodepth  string `json:"iodepth"`
		Numjobs  string `json:"numjobs"`
	} `json:"job options"`
	Read  way `json:"read"`
	Write way `json:"write"`
	Trim  way `json:"trim"`
	Sync  struct {
		TotalIos int64   `json:"total_ios"`
		LatNs    latency `json:"lat_ns"`
	} `json:"sync"`
	JobRuntime        int64              `json:"job_runtime"`
	UsrCPU            float64            `json:"usr_cpu"`
	SysCPU            float64            `json:"sys_cpu"`
	Ctx               int64              `json:"ctx"`
	Majf              int64              `json:"majf"`
	Minf              int64              `json:"minf"`
	IodepthLevel      map[string]float64 `json:"iodepth_level"`
	LatencyDepth      int64              `json:"latency_depth"`
	LatencyTarget     int64              `json:"latency_target"`
	LatencyPercentile float64            `json:"latency_percentile"`
	LatencyWindow     int64              `json:"latency_window"`
}

type result struct {
	FioVersion    string            `json:"fio version"`
	Timestamp     int64             `json:"timestamp"`
	TimestampMS   int64             `json:"timestamp_ms"`
	Time          string            `json:"time"`
	GlobalOptions map[string]string `json:"global options"`
	Jobs          []job             `json:"jobs"`
	DiskUtil      []struct {
		Name        string  `json:"name"`
		ReadIos     int64   `json:"read_ios"`
		WriteIos    int64   `json:"write_ios"`
		ReadMerges  int64   `json:"read_merges"`
		WriteMerges int64   `json:"write_merges"`
		ReadTicks   int64   `json:"read_ticks"`
		WriteTicks  int64   `json:"write_ticks"`
		InQueue     int64   `json:"in_queue"`
		Util        float64 `json:"util"`
	} `json:"disk_util"`
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		fmt.Println("cannot be read:", err)
		os.Exit(1)
	}
	fmt.Println(len(r.Jobs), r.GlobalOptions["bs"], r.Jobs[0].Read.ClatNs.N, r.DiskUtil[0].Name)
}
