// Globals of the server in modules that the pages import for their types only (src/api and what it imports). They do not
// exist in the browser.

interface ServerBuffer extends Uint8Array {
  toString(encoding?: string): string
}

declare const Buffer: { from(text: string, encoding?: string): ServerBuffer; alloc(size: number): ServerBuffer }
declare const Bun: { randomUUIDv7(encoding: 'buffer'): Uint8Array }
