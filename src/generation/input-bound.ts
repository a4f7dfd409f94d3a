// How many input tokens a body may come to, from its bytes alone: before a hold nothing is parsed. Roughly for wallets
// with room, strictly for thin ones. Pictures and documents are megabytes of body and a few thousand tokens.

const bytesPerToken = 4
/** What surrounds the text in the provider's own prompt: roles, tool instructions. */
const overheadTokens = 1024
/** The most that today's models read out of one picture. */
const pictureTokens = 5_000
/** A document is read as text and as a picture of every page; a page has at least this many bytes, as base64. */
const documentBytesPerToken = 10
/** A shorter one is text that happens to speak of base64. */
const mediaBytesMin = 1024

const base64Word = Buffer.from('base64')
const dataName = Buffer.from('"data"')
const pdfWord = Buffer.from('application/pdf')
const cacheWord = Buffer.from('cache_control')
/** How far behind the word the data may begin. */
const reach = 200

const semicolon = 0x3b
const quote = 0x22

/** Whether something is to be kept in a provider's cache. */
export function hasCacheMark(body: Uint8Array): boolean {
  return buffer(body).includes(cacheWord)
}

/** `ratio`: how many tokens the model has made of what four bytes were taken to be one. */
export function roughInputTokens(body: Uint8Array, ratio: number): number {
  const { textBytes, mediaTokens } = measure(body)
  return Math.ceil((textBytes / bytesPerToken) * ratio) + mediaTokens
}

/** No tokenizer makes more than one token of a byte. */
export function strictInputTokens(body: Uint8Array): number {
  const { textBytes, mediaTokens } = measure(body)
  return textBytes + overheadTokens + mediaTokens
}

function measure(body: Uint8Array): { textBytes: number; mediaTokens: number } {
  const bytes = buffer(body)
  let textBytes = bytes.length
  let mediaTokens = 0
  for (let at = bytes.indexOf(base64Word); at !== -1; at = bytes.indexOf(base64Word, at + 1)) {
    const start = dataStart(bytes, at)
    const end = start === -1 ? -1 : bytes.indexOf(quote, start)
    const length = end - start
    if (end === -1 || length < mediaBytesMin) continue
    const isDocument = bytes.subarray(Math.max(0, at - reach), start).includes(pdfWord)
    textBytes -= length
    mediaTokens += isDocument ? Math.ceil(length / documentBytesPerToken) : pictureTokens
    at = end
  }
  return { textBytes, mediaTokens }
}

/** Of `data:…;base64,…` right behind the word; of `"type":"base64", … "data":"…"` in the member of that name. */
function dataStart(bytes: Buffer, at: number): number {
  const behind = at + base64Word.length
  if (bytes[at - 1] === semicolon) return behind + 1
  const name = bytes.subarray(behind, behind + reach).indexOf(dataName)
  if (name === -1) return -1
  const open = bytes.indexOf(quote, behind + name + dataName.length)
  return open === -1 ? -1 : open + 1
}

function buffer(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
