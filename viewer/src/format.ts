// Numbers and names as the page shows them.

import type { Report } from './data';

export function trimmed(value: number, digits = 5): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-6) return value.toExponential(2);
  const fixed = size >= 10 ** digits ? value.toFixed(0) : value.toPrecision(digits);
  return fixed.includes('.') && !fixed.includes('e') ? fixed.replace(/\.?0+$/, '') : fixed;
}

// Where a file names no unit, its times are told as stated.
const STATED = 'as stated';

export function timeText(value: number | null | undefined, unit: string, digits = 5): string {
  if (value === null || value === undefined) return '–';
  return `${trimmed(value, digits)} ${unitText(unit)}`;
}

export function unitText(unit: string): string {
  return unit === 'none' ? STATED : unit;
}

// In a column, or along an axis, whose title says so once (`titleOfTimes`).
export function timeUnderTitle(value: number | null | undefined, unit: string, digits = 5): string {
  return unit === 'none' && value !== null && value !== undefined ? trimmed(value, digits) : timeText(value, unit, digits);
}

export function titleOfTimes(title: string, unit: string): string {
  return unit === 'none' ? `${title}, ${STATED}` : title;
}

export function bytesText(bytes: number | null): string {
  if (bytes === null) return 'no limit';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    ++unit;
  }
  return `${trimmed(size, 3)} ${units[unit]}`;
}

export function percentText(share: number | null | undefined, digits = 1): string {
  if (share === null || share === undefined) return '–';
  const percent = share * 100;
  if (percent > 0 && percent < 10 ** -digits) return `< ${10 ** -digits} %`;
  return `${percent.toFixed(digits)} %`;
}

export function signedPercent(share: number): string {
  return `${share < 0 ? '−' : '+'}${Math.abs(share * 100).toFixed(1)} %`;
}

export function secondsText(seconds: number): string {
  if (seconds < 1) return `${trimmed(seconds * 1000, 3)} ms`;
  return seconds < 120 ? `${trimmed(seconds, 3)} s` : `${trimmed(seconds / 60, 3)} min`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

// A name on one line: whitespace and control characters become visible blanks, long ones lose their
// middle.
export function oneLine(name: string, most = 80): string {
  const ends = name.length > 4 * most ? name.slice(0, 2 * most) + name.slice(-2 * most) : name;
  return shortened(Array.from(ends.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')), most);
}

// Names of one model mostly begin alike, so most of what is kept is the end; `head`: the share of
// the beginning.
export function shortened(letters: string[], most: number, head = most < 16 ? 0 : 0.3): string {
  if (letters.length <= most) return letters.join('');
  const begin = Math.floor(head * most);
  return `${letters.slice(0, begin).join('')}…${letters.slice(letters.length - (most - 1 - begin)).join('')}`;
}

// From start to end; what rounding leaves is nothing.
export function duration(start: number, end: number): number {
  return end - start < 1e-9 * Math.abs(end) ? 0 : end - start;
}

export function flopsText(flops: number): string {
  const units = ['flop', 'kflop', 'Mflop', 'Gflop', 'Tflop', 'Pflop'];
  let size = flops;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    ++unit;
  }
  return `${trimmed(size, 3)} ${units[unit]}`;
}

// What a measurement that is not valid was: others took the cores, so that too few samples were
// kept (Measured::disturbed), else its samples differ too much.
export function disturbed({ kept, rejected }: { kept: number; rejected: number }): boolean {
  const fewest = 3;
  return kept === 0 || rejected > kept || kept < Math.min(fewest, kept + rejected);
}

// The error of estimated times, after `lead`; nothing where times are not estimated.
export function ifEstimated({ problem: { error } }: Report, lead: string): string {
  return error ? `${lead}times are off by up to ${error.times} times` : '';
}
