//! Pacing, histograms, comparison and reports. No knowledge of emulators.
