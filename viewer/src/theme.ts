// Light or dark: as the system says, until the reader chooses. Canvases take their colours from the
// style sheet's variables.

export interface ThemeColours {
  canvas: string; card: string; frame: string; ink: string; quiet: string; line: string;
  edge: string; cut: string; critical: string; accent: string; differs: string; transfer: string;
}

const KEY = 'placewright-theme';

export function themeColours(): ThemeColours {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    canvas: colour('canvas'), card: colour('card'), frame: colour('frame'), ink: colour('ink'),
    quiet: colour('quiet'), line: colour('line'), edge: colour('edge'), cut: colour('cut'),
    critical: colour('critical'), accent: colour('accent'), differs: colour('differs'),
    transfer: colour('transfer'),
  };
}

export function currentTheme(): 'light' | 'dark' {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

export function startTheme(changed: () => void) {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept) document.documentElement.dataset.theme = kept;
  } catch {
    // A page from disk may have no storage; then the system's choice holds.
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
}

export function toggleTheme() {
  const theme = currentTheme() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}
