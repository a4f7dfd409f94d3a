// Signs thinking the way a provider does, so that a replay that alters a block is caught. The key is public on purpose:
// it protects nothing, and a signature must be the same in every installation.

const key = 'sandbox thinking, 2026-11'
const prefix = 'sandbox.'

export function signThinking(text: string): string {
  return prefix + new Bun.CryptoHasher('sha256', key).update(text).digest('base64url')
}

export function isSignedThinking(text: string, signature: string | undefined): boolean {
  return signature === signThinking(text)
}
