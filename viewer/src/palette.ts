// Colours of devices: Okabe and Ito's set, which the colour-blind can tell apart. From the ninth
// device on the colours come again with a pattern on top; names stand beside colours everywhere.

const COLOURS = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#8A8F98'];

export function deviceColour(device: number): string {
  return COLOURS[device % COLOURS.length];
}

// 0: plain; 1, 2, 3, …: which pattern.
export function devicePattern(device: number): number {
  return Math.floor(device / COLOURS.length) % 4;
}

export function withAlpha(hex: string, alpha: number): string {
  const part = (from: number) => parseInt(hex.slice(from, from + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`;
}

export function inkOn(hex: string): string {
  const part = (from: number) => parseInt(hex.slice(from, from + 2), 16);
  return part(1) * 0.299 + part(3) * 0.587 + part(5) * 0.114 > 140 ? '#111318' : '#ffffff';
}

const patterns = new Map<number, CanvasPattern | string>();

// The fill of a device's marks on a canvas.
export function deviceFill(context: CanvasRenderingContext2D, device: number): CanvasPattern | string {
  const pattern = devicePattern(device);
  if (pattern === 0) return deviceColour(device);
  const known = patterns.get(device);
  if (known) return known;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const ink = tile.getContext('2d')!;
  ink.fillStyle = deviceColour(device);
  ink.fillRect(0, 0, 8, 8);
  ink.strokeStyle = ink.fillStyle = inkOn(deviceColour(device));
  ink.globalAlpha = 0.65;
  ink.lineWidth = 1.4;
  ink.beginPath();
  if (pattern === 1 || pattern === 3) {
    for (const shift of [-8, 0, 8]) {
      ink.moveTo(shift, 8);
      ink.lineTo(shift + 8, 0);
    }
  }
  if (pattern === 3) {
    for (const shift of [-8, 0, 8]) {
      ink.moveTo(shift, 0);
      ink.lineTo(shift + 8, 8);
    }
  }
  ink.stroke();
  if (pattern === 2) {
    ink.fillRect(1, 1, 2.4, 2.4);
    ink.fillRect(5, 5, 2.4, 2.4);
  }
  const fill = context.createPattern(tile, 'repeat') ?? deviceColour(device);
  patterns.set(device, fill);
  return fill;
}

// The same for elements: a CSS background.
export function deviceBackground(device: number): string {
  const colour = deviceColour(device);
  const ink = withAlpha(inkOn(colour), 0.6);
  const stripes = (angle: number) =>
    `repeating-linear-gradient(${angle}deg, ${ink} 0 1.2px, transparent 1.2px 5px)`;
  switch (devicePattern(device)) {
    case 1: return `${stripes(135)}, ${colour}`;
    case 2: return `radial-gradient(${ink} 1.2px, transparent 1.6px) 0 0 / 5px 5px, ${colour}`;
    case 3: return `${stripes(135)}, ${stripes(45)}, ${colour}`;
    default: return colour;
  }
}
