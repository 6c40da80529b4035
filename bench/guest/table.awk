# The table of bench/guest.sh: LAB.csv GUEST.csv, both rows of disk,job,scheduler,client,start_ns,elapsed_ns,bytes,calls,...
# A cell's bandwidth is that of all clients together, but for a program that starts, of which the time counts.
function abs(x) { return x < 0 ? -x : x }
function off(lab, guest) { return guest == 0 ? (lab == 0 ? 0 : 999) : (lab / guest - 1) * 100 }
function sort(a, n,    i, j, t) {
    for (i = 2; i <= n; i++) { t = a[i]; for (j = i - 1; j > 0 && a[j] > t; j--) a[j + 1] = a[j]; a[j + 1] = t }
}
function median(a, n) { return (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2 }
function summary(what, a, n,    i, within) {
    sort(a, n)
    for (i = 1; i <= n; i++) within += a[i] <= 5
    printf "| %s | %d | %.1f | %.0f | %.0f |\n", what, n, median(a, n), within / n * 100, a[n]
}
# A figure of both: kept for the table and the summaries.
function note(disk, row, sched, guest, lab,    e) {
    e = off(lab, guest)
    text[disk, row, sched] = sprintf("%.4g %+.1f", guest, e)
    if (!((disk, row) in rows)) { rows[disk, row]; order[++row_count] = disk SUBSEP row }
    if (!(sched in known_sched)) { known_sched[sched]; scheds[++sched_count] = sched }
    if (!(disk in known_disk)) { known_disk[disk]; disks[++disks_seen] = disk }
    all[++n] = abs(e)
    per_sched[sched, ++count[sched]] = abs(e)
    per_disk[disk, ++disk_count[disk]] = abs(e)
}
NR == FNR {
    cell = $1 "," $2 "," $3
    if ($4 == "app") lab_app[cell] = $6 / 1e6
    else if ($6 > 0) lab[cell] += $7 / $6 * 1e9 / 1048576
    known[cell]
    next
}
{ cell = $1 "," $2 "," $3 }
!(cell in known) { next }
!(cell in number) { number[cell] = ++cells; name[cells] = cell }
$4 == "app" { app[cell] = $6 / 1e6; next }
$6 > 0 { guest[cell] += $7 / $6 * 1e9 / 1048576 }
END {
    for (i = 1; i <= cells; i++) {
        cell = name[i]; split(cell, c, ",")
        note(c[1], c[2], c[3], guest[cell], lab[cell])
        if (cell in app) note(c[1], c[2] ", ms", c[3], app[cell], lab_app[cell])
    }
    if (!n) { print "no cell has both"; exit 3 * check }
    print "The guest's MiB/s (`start, ms`: milliseconds), and how far the lab is off, in percent.\n"
    printf "| disk | job |"; for (s = 1; s <= sched_count; s++) printf " %s |", scheds[s]
    printf "\n|---|---|"; for (s = 1; s <= sched_count; s++) printf "---:|"
    print ""
    for (i = 1; i <= row_count; i++) {
        split(order[i], c, SUBSEP); printf "| %s | %s |", c[1], c[2]
        for (s = 1; s <= sched_count; s++) printf " %s |", text[c[1], c[2], scheds[s]]
        print ""
    }
    print "\n| | figures | median error, % | within 5 %, % of them | largest error, % |\n|---|---:|---:|---:|---:|"
    for (k = 1; k <= disks_seen; k++) {
        d = disks[k]; split("", a); for (i = 1; i <= disk_count[d]; i++) a[i] = per_disk[d, i]; summary(d, a, disk_count[d])
    }
    for (k = 1; k <= sched_count; k++) {
        s = scheds[k]; split("", a); for (i = 1; i <= count[s]; i++) a[i] = per_sched[s, i]; summary(s, a, count[s])
    }
    summary("all", all, n)
    for (i = 1; i <= n; i++) good += all[i] <= 5
    exit check && !(median(all, n) <= 2 && good >= 0.9 * n) * 3
}
