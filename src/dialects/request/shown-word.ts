// A value of the caller's as a refusal may repeat it: a word such as a type, a role or a tool's name, and nothing that is
// likelier part of a conversation or a key, which would then stand in logs. The refusal's param names its place anyway.

const wordForm = /^[a-zA-Z][a-zA-Z0-9_-]{0,39}$/
/** As providers and clients write them. */
const callIdForm = /^(?:call|toolu|fc|chatcmpl-tool)_?[a-zA-Z0-9_-]{1,60}$/

/** In backticks. */
export function shownWord(value: unknown): string {
  return typeof value === 'string' && isWord(value) ? `\`${value}\`` : '`…`'
}

/** The same for the id of a tool call. */
export function shownCallId(id: string): string {
  return callIdForm.test(id) || isWord(id) ? `\`${id}\`` : '`…`'
}

/** Few digits, as in `look2`, or a date, as in `web_search_20250305`. */
function isWord(text: string): boolean {
  if (!wordForm.test(text)) return false
  const digits = text.replaceAll(/[^0-9]/g, '')
  return digits.length <= 3 || (digits.length === 8 && /_[0-9]{8}$/.test(text))
}
