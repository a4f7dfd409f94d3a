// A caller's x-tollgate-strict: what would be left out or approximated on the way is then refused.

export function isStrict(headers: Headers): boolean {
  const value = headers.get('x-tollgate-strict')
  return value !== null && value.trim().toLowerCase() === 'true'
}
