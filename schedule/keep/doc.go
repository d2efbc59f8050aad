// Package keep decides which of a series of backups stay, in one way for volume snapshots and repository snapshots.
//
// # What it does
//
// [Apply] takes the items of one series and [Rules], and returns a verdict on each, with reasons in words. Counted rules
// keep the newest good item of each of the last n hours, days, weeks, months or years that have one, as far as they go;
// [Rules].Within keeps all of a stretch of time.
//
// # Minimal use
//
//	for _, v := range keep.Apply(items, keep.Rules{Hourly: 24, Daily: 7}, time.UTC) {
//		if !v.Keep {
//			remove(v.Item.ID)
//		}
//	}
//
// # Guarantees
//
//   - The newest good item stays, whatever the rules say; without a good item nothing goes.
//   - Only good items are counted. One that failed or is partial never takes the place of a good one.
//   - Items in progress and pinned items stay and are not counted.
//   - Rules that are all zero keep everything.
//   - Within is measured from the newest good item, so nothing ages out while no backups are made.
//   - Deleting what goes and applying the same rules again lets nothing more go.
//
// # What it never does
//
// It reads no clock and deletes nothing. It does not group: items of different sources belong into different calls. And
// it believes the times that it is given; one in the far future is for the caller to notice.
package keep
