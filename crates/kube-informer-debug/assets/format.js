"use strict";

// Text from a cluster may contain characters that hide or reorder what is around them. They are shown as escapes.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function visible(text) {
  return String(text ?? "").replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function number(n) {
  if (n < 10000) return String(Math.round(n));
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + " k";
  return (n / 1e6).toFixed(1) + " M";
}

function rate(n) {
  if (n <= 0) return "0/s";
  if (n < 9.95) return n.toFixed(1) + "/s";
  return number(n).replace(" ", "") + "/s";
}

function bytes(n) {
  const units = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (n >= 999.5 && at < 3) { n /= 1000; at += 1; }
  return n.toFixed(at > 0 && n < 9.95 ? 1 : 0) + " " + units[at];
}

function span(ms) {
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 10000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
}

function micros(us) {
  if (us == null) return "–";
  return us < 1000 ? us + " µs" : span(us / 1000);
}

function clock(unix) {
  return new Date(unix).toTimeString().slice(0, 8);
}

// Makes an element. Text is always set as text.
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = visible(text);
  return element;
}

function say(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

function dress(element, name) {
  if (element.getAttribute("class") !== name) element.setAttribute("class", name);
}
