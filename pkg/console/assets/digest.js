// A worker: it computes the SHA-256 of files. WebCrypto is fast, and needs a file as a whole; larger files are read in
// parts.
import { sha256 } from "./noble-hashes-2.4.0/sha2.js";

const whole = 16 << 20, part = 4 << 20;
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

const digest = async (file, read) => {
  if (file.size <= whole) {
    const data = await file.arrayBuffer();
    read(data.byteLength);
    return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
  }
  const sum = sha256.create();
  for (let at = 0; at < file.size; at += part) {
    const data = new Uint8Array(await file.slice(at, at + part).arrayBuffer());
    sum.update(data);
    read(data.length);
  }
  return hex(sum.digest());
};

onmessage = async ({ data: { number, file } }) => {
  try {
    postMessage({ number, sha256: await digest(file, (n) => postMessage({ number, read: n })) });
  } catch (err) {
    postMessage({ number, problem: String(err.message || err) });
  }
};
