-- error: syntax
..'x'
