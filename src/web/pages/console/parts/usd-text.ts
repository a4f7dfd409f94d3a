// Money as people read it, exactly as the ledger has it: a decimal text from the API, never a number, never rounded.

/** `1234.5` → `$1,234.50`, `-0.1` → `−$0.10`; what is no decimal stays as it is. */
export function usdText(usd: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(usd)
  if (!match) return usd
  const [, sign, whole = '0', fraction = ''] = match
  return `${sign === '-' ? '−' : ''}$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${fraction.padEnd(2, '0')}`
}
