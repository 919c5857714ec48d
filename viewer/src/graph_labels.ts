// The labels of cut edges: what each moves. Labels that would cover each other become one, which
// counts its edges. None covers a box: what has no room is shown under the pointer.

import { bytesText, plural, timeText, timeUnderTitle } from './format';
import { pointsOf, type Edge } from './graph_edges';

export interface Label {
  x: number; // of its middle
  y: number;
  width: number;
  text: string;
  edges: Edge[];
}

export interface Rectangle { x: number; y: number; width: number; height: number }

const LABEL_HEIGHT = 15;
const MARGIN = 6; // between labels
// Where along its edge a label may be, the best place first.
const PLACES = [0.5, 0.35, 0.65, 0.2, 0.8];

// What edges move between devices: "64 KiB · 0.0121 ms".
export function movedText(edges: Edge[], unit: string, timeOf = timeText): string {
  const bytes = edges.reduce((sum, edge) => sum + edge.cutBytes, 0);
  const time = edges.reduce((sum, edge) => sum + edge.cutTime, 0);
  return [bytes > 0 ? bytesText(bytes) : '', time > 0 ? timeOf(time, unit, 3) : ''].filter(Boolean).join(' · ');
}

// The title of the graph says once that times are as stated.
function textOf(edges: Edge[], unit: string): string {
  const moved = movedText(edges, unit, timeUnderTitle);
  return edges.length > 1 ? `${plural(edges.length, 'edge')} · ${moved}` : moved;
}

const apart = (a: Rectangle, b: Rectangle) =>
  a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

const areaOf = ({ x, y, width }: Label, margin = 0): Rectangle =>
  ({ x: x - width / 2 - margin, y: y - LABEL_HEIGHT / 2 - margin, width: width + 2 * margin, height: LABEL_HEIGHT + 2 * margin });

export function isAt(label: Label, x: number, y: number): boolean {
  return Math.abs(label.x - x) <= label.width / 2 && Math.abs(label.y - y) <= LABEL_HEIGHT / 2;
}

// `boxes` are those in sight, `widthOf` measures a text.
export function labelsOf(edges: Edge[], unit: string, boxes: Rectangle[], widthOf: (text: string) => number): Label[] {
  const labels: Label[] = [];
  const isFree = (label: Label) => boxes.every((box) => apart(areaOf(label), box));
  const first = [...edges].sort((a, b) => Number(b.critical) - Number(a.critical) || b.cutTime - a.cutTime || b.cutBytes - a.cutBytes);
  for (const edge of first) {
    const text = textOf([edge], unit);
    if (!text) continue;
    const points = pointsOf(edge);
    const candidates = PLACES.map((share) => points[Math.round(share * (points.length - 1))])
      .map(([x, y]) => ({ x, y, width: widthOf(text) + 8, text, edges: [edge] }))
      .filter(isFree);
    const own = candidates.find((label) => labels.every((other) => apart(areaOf(label), areaOf(other, MARGIN))));
    if (own) {
      labels.push(own);
      continue;
    }
    const near = labels.find((other) => candidates.some((label) => !apart(areaOf(label), areaOf(other, MARGIN))));
    if (!near) continue;
    near.edges.push(edge);
    near.text = textOf(near.edges, unit);
    near.width = widthOf(near.text) + 8;
  }
  return labels;
}
